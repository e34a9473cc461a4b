window.ui = SwaggerUIBundle({
  url: "../api-doc/openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  // Otherwise the page would send the document to a validator on the internet.
  validatorUrl: "none",
});
